"""Are statements true as often as they say, and how much do they say?"""

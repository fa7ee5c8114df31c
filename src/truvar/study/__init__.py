"""The stateful ask-and-tell interface."""

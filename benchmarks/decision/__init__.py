"""How well rules decide: what they spend to reach a goal, on problems whose truth is known."""

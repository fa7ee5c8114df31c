"""Decision quality: what policies spend to reach a goal, on problems whose truth is known."""

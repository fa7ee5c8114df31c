"""Arrays in, arrays out: the inner loops, each with a NumPy twin that says plainly what it computes."""

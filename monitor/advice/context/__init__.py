"""What a rule sees: one run with its figures under short names, or the whole machine."""

"""What the syntax tree of the user's code says about its training loop: what a step needs, what it does not.

Only the language and the names of library functions decide here, never the user's own names.
"""

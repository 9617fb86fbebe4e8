"""What the syntax tree of the user's code reveals about its training loop: what a step needs and does not.

Judged only by the language and the names of library functions, never by the user's own names.
"""

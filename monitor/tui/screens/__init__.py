"""The screens: which views, where, and which keys."""

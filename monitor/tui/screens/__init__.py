"""The screens: which views, where, and with which keys."""

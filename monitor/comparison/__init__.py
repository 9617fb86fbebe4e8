"""Two runs, or one before and after a change: how much faster, beyond noise, and as predicted?"""

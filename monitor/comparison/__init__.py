"""Two runs, or one before and after a change: how fast, beyond noise, as predicted?"""

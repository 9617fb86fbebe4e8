"""Settings of a training that can be changed from outside, in the process of an unchanged script."""

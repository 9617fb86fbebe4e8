"""Network, matcher, criterion and engine of the set detector."""

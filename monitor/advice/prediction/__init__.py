"""What a change would gain: a model of the step, the gain of one remedy, the gain of all together."""

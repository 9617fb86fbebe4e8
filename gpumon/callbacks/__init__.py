"""The callbacks of `sdk.callbacks`, for a project that has its own `sdk`."""

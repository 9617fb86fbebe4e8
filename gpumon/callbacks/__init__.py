"""The callbacks of `sdk.callbacks`, for a project that has an `sdk` of its own."""

"""Evidence shared by several rules: hot lines, loading, compute, ranks, memory growth, clocks."""

"""The documentation as a site: pages of docs/ and of the root, and pages generated from rules and benchmarks."""

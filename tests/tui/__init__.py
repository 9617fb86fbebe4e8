"""Tests of the screen: scenes, goldens, keys."""

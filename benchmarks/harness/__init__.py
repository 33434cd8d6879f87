"""What runs, judges and prints the benchmarks; knows the peers only as programs."""

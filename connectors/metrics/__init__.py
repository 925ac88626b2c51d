"""What the processes tell Prometheus: every metric with its meaning, and the endpoint."""

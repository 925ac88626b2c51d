"""Apache Iceberg tables on Spark as a kind of target."""

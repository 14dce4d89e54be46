"""Commands on real servers: HDFS, and S3 with and without a JAR (``make storage``)."""

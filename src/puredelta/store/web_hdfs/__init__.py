"""HDFS by its HTTP interface (WebHDFS), for reading where no JVM is in reach."""

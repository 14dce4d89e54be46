"""What Spark, Java and the Pythons of this machine lack for Delta tables."""

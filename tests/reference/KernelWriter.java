import io.delta.kernel.DataWriteContext;
import io.delta.kernel.Operation;
import io.delta.kernel.Snapshot;
import io.delta.kernel.Transaction;
import io.delta.kernel.TransactionCommitResult;
import io.delta.kernel.data.ColumnVector;
import io.delta.kernel.data.FilteredColumnarBatch;
import io.delta.kernel.data.Row;
import io.delta.kernel.defaults.engine.DefaultEngine;
import io.delta.kernel.defaults.internal.data.DefaultColumnarBatch;
import io.delta.kernel.defaults.internal.data.vector.DefaultLongVector;
import io.delta.kernel.engine.Engine;
import io.delta.kernel.exceptions.ConcurrentWriteException;
import io.delta.kernel.exceptions.MaxCommitRetryLimitReachedException;
import io.delta.kernel.internal.InternalScanFileUtils;
import io.delta.kernel.types.LongType;
import io.delta.kernel.types.StructType;
import io.delta.kernel.unitycatalog.UCCatalogManagedClient;
import io.delta.kernel.unitycatalog.UCTableIdentifier;
import io.delta.kernel.utils.CloseableIterable;
import io.delta.kernel.utils.CloseableIterator;
import io.delta.kernel.utils.DataFileStatus;
import io.delta.storage.commit.uccommitcoordinator.UCDeltaTokenBasedRestClient;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;

/**
 * Appends one row per commit to a managed table by the Java client of the reference, then prints the files that it reads.
 *
 * <p>Arguments: address of the server, catalog, schema, table, id of the table, location, first row, number of commits.
 */
public final class KernelWriter {
  private final Engine engine = DefaultEngine.create(new Configuration());
  private final UCCatalogManagedClient client;
  private final UCTableIdentifier name;
  private final String id;
  private final String location;

  private KernelWriter(String[] arguments) {
    Map<String, String> settings =
        Map.of("uri", arguments[0], "token", "any", "credentialVending.enabled", "false");
    client = new UCCatalogManagedClient(new UCDeltaTokenBasedRestClient(settings, Configuration::new));
    name = new UCTableIdentifier(arguments[1], arguments[2], arguments[3]);
    id = arguments[4];
    location = arguments[5];
  }

  public static void main(String[] arguments) throws Exception {
    KernelWriter writer = new KernelWriter(arguments);
    long first = Long.parseLong(arguments[6]);
    for (long row = first; row < first + Long.parseLong(arguments[7]); row++) {
      while (!writer.append(row)) {
        Thread.sleep(5);
      }
    }
    writer.printFiles();
  }

  private Snapshot load() {
    return client.loadSnapshot(engine, id, location, name, Optional.empty(), Optional.empty());
  }

  /** Commits a file with one row; returns false if another writer was first. */
  private boolean append(long row) throws Exception {
    Transaction transaction =
        load().buildUpdateTableTransaction("kernel", Operation.WRITE).withMaxRetries(0).build(engine);
    Row state = transaction.getTransactionState(engine);
    DataWriteContext context = Transaction.getWriteContext(engine, state, Collections.emptyMap());
    CloseableIterator<FilteredColumnarBatch> rows =
        Transaction.transformLogicalData(engine, state, batches(row, transaction), Collections.emptyMap());
    CloseableIterator<DataFileStatus> files =
        engine
            .getParquetHandler()
            .writeParquetFiles(context.getTargetDirectory(), rows, context.getStatisticsColumns());
    CloseableIterator<Row> actions = Transaction.generateAppendActions(engine, state, files, context);
    try {
      TransactionCommitResult result = transaction.commit(engine, CloseableIterable.inMemoryIterable(actions));
      result.getPostCommitSnapshot().orElseGet(this::load).publish(engine);
      return true;
    } catch (ConcurrentWriteException | MaxCommitRetryLimitReachedException taken) {
      return false;
    }
  }

  private CloseableIterator<FilteredColumnarBatch> batches(long row, Transaction transaction) {
    StructType schema = transaction.getSchema(engine);
    ColumnVector ids = new DefaultLongVector(LongType.LONG, 1, Optional.empty(), new long[] {row});
    DefaultColumnarBatch batch = new DefaultColumnarBatch(1, schema, new ColumnVector[] {ids});
    Iterator<FilteredColumnarBatch> one = List.of(new FilteredColumnarBatch(batch, Optional.empty())).iterator();
    return new CloseableIterator<>() {
      @Override
      public boolean hasNext() {
        return one.hasNext();
      }

      @Override
      public FilteredColumnarBatch next() {
        return one.next();
      }

      @Override
      public void close() {}
    };
  }

  private void printFiles() throws Exception {
    Snapshot newest = load();
    System.out.println("version " + newest.getVersion());
    try (CloseableIterator<FilteredColumnarBatch> files = newest.getScanBuilder().build().getScanFiles(engine)) {
      while (files.hasNext()) {
        try (CloseableIterator<Row> rows = files.next().getRows()) {
          while (rows.hasNext()) {
            System.out.println("file " + InternalScanFileUtils.getAddFileStatus(rows.next()).getPath());
          }
        }
      }
    }
  }
}

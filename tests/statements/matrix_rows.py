"""Statements that name tables of the session catalog, in blocks of steps that follow each other.

`connect_matrix` runs each block in a classic and in a Connect session. ``ROOT`` is a directory.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from puredelta.recipes import upsert
from tests.reference.everyday import Shop
from tests.reference.recorded_steps import Step, rows, steps

_DEFINITIONS = """
    CREATE TABLE g (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2) COMMENT
        'it''s', d INT DEFAULT 5 + 1, `ab` INT GENERATED ALWAYS AS (d + 1), k CHAR(3) NOT NULL,
        v VARCHAR(9), s STRUCT<x: INT COMMENT 'in', y: ARRAY<MAP<STRING, DECIMAL(5, 2)>>>)
        USING delta PARTITIONED BY (k) COMMENT 'all ''of'' it' TBLPROPERTIES ('mine' = 1,
        'delta.feature.allowColumnDefaults' = 'supported', two.parts = true);
    INSERT INTO g (d, k) VALUES (1, 'x'), (DEFAULT, 'y');
    SELECT * FROM g;
    CREATE TABLE g (a INT) USING delta;
    CREATE TABLE IF NOT EXISTS g (a INT) USING delta;
    create table `C` (a INT, s STRUCT<x: INT>) using DELTA cluster by (a, s.x);
    CREATE TABLE db2.other (a INT) USING delta LOCATION 'ROOT/other';
    CREATE TABLE spark_catalog.db2.third (a INT) USING delta OPTIONS (o 'p', 'delta.appendOnly'
        = 'true');
    DROP TABLE db2.third;
    CREATE TABLE bare USING delta;
    ALTER TABLE bare ADD COLUMNS (a INT);
    CREATE OR REPLACE TABLE c (z DATE, y INT) USING delta PARTITIONED BY (z);
    REPLACE TABLE c (a INT, t DATE) USING delta PARTITIONED BY (days(t));
    REPLACE TABLE missing (a INT) USING delta;
    CREATE TABLE c2 USING delta PARTITIONED BY (p) COMMENT 'c' AS SELECT 1 AS a, 2 AS p;
    CREATE TABLE c3 USING delta LOCATION 'ROOT/c3' AS WITH w AS (SELECT a FROM c2) SELECT w.a,
        c2.p FROM w JOIN c2 ON w.a = c2.a;
    CREATE OR REPLACE TABLE c3 USING delta TBLPROPERTIES (n 1) AS SELECT a + 1 AS a FROM c3;
    REPLACE TABLE c3 USING delta AS VALUES (1, 'x'), (2, 'y');
    SELECT * FROM c3;
    CREATE TABLE c4 USING delta AS TABLE c3;
    CREATE TABLE c5 USING delta CLUSTER BY (a) (SELECT * FROM c2);
    CREATE TABLE c6 LIKE g;
    CREATE TABLE c7 LIKE g LOCATION 'ROOT/c7' TBLPROPERTIES ('mine' = '2');
    CREATE TABLE c8 SHALLOW CLONE c2;
    CREATE OR REPLACE TABLE c8 SHALLOW CLONE c3 VERSION AS OF 0 TBLPROPERTIES ('a' = 'b');
    CREATE TABLE c9 SHALLOW CLONE c2 LOCATION 'ROOT/c9';
    CREATE TABLE c10 DEEP CLONE c2;
    CREATE TABLE p1 (a INT) USING parquet;
    CREATE TABLE p2 USING parquet AS SELECT * FROM c2;
    SELECT * FROM p2;
    CREATE TABLE p3 LIKE p1;
    CREATE TABLE p4 LIKE p2 USING delta;
    CREATE TABLE b1 (a INT) USING delta CLUSTERED BY (a) INTO 4 BUCKETS;
    CREATE TABLE w1 (a INT,) USING delta;
    CREATE TABLE w2 (a INTEGERS) USING delta;
    CREATE TABLE w3 (a INT, A INT) USING delta;
    CREATE TABLE w4 (a INT) USING delta PARTITIONED BY (nope);
    CREATE TABLE w5 (a INT) USING delta AS SELECT 1 AS a;
    CREATE TABLE w6 USING delta AS SELECT nope;
    CREATE TABLE w7 USING delta PARTITIONED BY (p INT) AS SELECT 1 AS p;
    CREATE TABLE w8 (a INT) USING delta PARTITIONED BY (p INT);
    CREATE TABLE w9 (a INT DEFAULT nope) USING delta TBLPROPERTIES
        ('delta.feature.allowColumnDefaults' = 'supported');
    CREATE TABLE w10 (a INT GENERATED ALWAYS AS (b)) USING delta;
    CREATE TABLE w11 (a INT) USING delta TBLPROPERTIES ('x' = '1', 'x' = '2');
    CREATE TABLE w12 (a INT) USING delta USING delta;
    CREATE TABLE nowhere.w13 (a INT) USING delta;
    CREATE TABLE `a b` (a INT) USING delta;
    CREATE TEMPORARY TABLE w14 (a INT) USING delta;
    CREATE EXTERNAL TABLE w15 (a INT) USING delta;
    CREATE TABLE n1 (a INT NOT NULL, b STRING COLLATE UTF8_LCASE) USING delta;
    CREATE TABLE n2 (`delta.x` INT, `select` STRING, `a,b` INT) USING delta TBLPROPERTIES
        ('delta.columnMapping.mode' = 'name');
    SELECT * FROM n2
"""

_ROWS = """
    CREATE TABLE i (a INT, p INT, q STRING, b INT) USING delta PARTITIONED BY (p, q);
    INSERT INTO i VALUES (1, 1, 'x', 1), (2, 2, 'y', 2);
    INSERT INTO TABLE spark_catalog.matrix.I SELECT a + 2, p, q, b FROM i;
    INSERT INTO i PARTITION (p = 1, q = 'x') VALUES (1, 2);
    INSERT INTO i PARTITION (p = 1, q) SELECT 3, 'y', 4;
    INSERT INTO i PARTITION (p = 3, q = 'z') (b, a) SELECT 5, 6;
    INSERT INTO i (b, a) SELECT 5, 6;
    INSERT INTO i BY NAME SELECT 7 AS q, 8 AS p;
    INSERT INTO i (SELECT 1, 2, 'br', 3);
    INSERT INTO i (a, b) (SELECT 1, 2);
    INSERT INTO i TABLE i;
    INSERT INTO i FROM i SELECT a, p, 'from', b WHERE a = 1;
    WITH w AS (SELECT 9 AS a) INSERT INTO i SELECT a, a, 'with', a FROM w;
    INSERT INTO i WITH w AS (SELECT 9 AS a) SELECT a, a, 'with2', a FROM w;
    INSERT INTO i SELECT * FROM i WHERE a = 9 UNION ALL SELECT 10, 10, 'union', 10;
    FROM i INSERT INTO i SELECT a, p, 'm1', b WHERE a = 9 INSERT INTO i SELECT a, p, 'm2', b
        WHERE a = 10;
    INSERT OVERWRITE i PARTITION (p = 1, q = 'x') VALUES (10, 20);
    INSERT INTO i REPLACE WHERE p = 1 AND q = 'y' VALUES (9, 1, 'y', 9);
    INSERT INTO i REPLACE WHERE p = 1 VALUES (9, 2, 'y', 9);
    SELECT * FROM i;
    SET spark.sql.sources.partitionOverwriteMode=dynamic;
    INSERT OVERWRITE i PARTITION (p, q) SELECT 100, 2, 'y', 100;
    INSERT OVERWRITE TABLE i SELECT 200, 9, 'with', 200;
    RESET spark.sql.sources.partitionOverwriteMode;
    SELECT * FROM i;
    INSERT OVERWRITE i SELECT 1, DEFAULT, 'd', DEFAULT;
    INSERT INTO i PARTITION (a = 1) VALUES (1, 2, 3);
    INSERT INTO i VALUES (1);
    INSERT INTO i (a, nope) VALUES (1, 2);
    INSERT INTO i VALUES ('x', 1, 'x', 1);
    INSERT INTO i VALUES (1, 1 + DEFAULT, 'x', 1);
    INSERT INTO i SELECT nope FROM i;
    INSERT INTO i VALUES (1, 1;
    INSERT INTO missing VALUES (1);
    INSERT INTO delta.`ROOT/nothing` VALUES (1);
    CREATE TABLE ip (a INT) USING delta LOCATION 'ROOT/ip';
    INSERT INTO delta.`ROOT/ip` VALUES (1), (2);
    INSERT OVERWRITE delta.`ROOT/ip` SELECT a + 1 FROM ip;
    INSERT INTO ip SELECT a FROM delta.`ROOT/ip` VERSION AS OF 1;
    SELECT * FROM ip;
    CREATE TABLE pq (a INT) USING parquet;
    INSERT INTO pq SELECT a FROM ip;
    INSERT INTO pq VALUES (77);
    SELECT * FROM pq;
    UPDATE i SET a = a + (SELECT max(a) FROM ip) WHERE q = 'd';
    UPDATE i AS x SET x.b = DEFAULT WHERE x.a > 0;
    DELETE FROM i WHERE a IN (SELECT a FROM i WHERE a < 0);
    MERGE INTO i USING ip ON i.a = ip.a WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (a)
        VALUES (ip.a);
    EXPLAIN MERGE INTO i USING ip ON i.a = ip.a WHEN MATCHED THEN DELETE;
    UPDATE missing SET a = 1;
    UPDATE pq SET a = 1;
    DELETE FROM i;
    TRUNCATE TABLE i;
    TRUNCATE TABLE pq;
    TRUNCATE TABLE missing
"""

_CHANGES = """
    CREATE TABLE a (a INT NOT NULL, s STRUCT<x: INT>, c INT) USING delta;
    ALTER TABLE a SET TBLPROPERTIES ('mine' = 1, two.parts = true);
    ALTER TABLE a UNSET TBLPROPERTIES ('mine');
    ALTER TABLE a ADD COLUMNS (d INT COMMENT 'x' FIRST, s.y DECIMAL(5, 2) AFTER x);
    ALTER TABLE a ADD COLUMN e INT DEFAULT 1;
    ALTER TABLE a ALTER COLUMN d COMMENT 'm2', c COMMENT 'm1';
    ALTER TABLE a CHANGE COLUMN c c INT AFTER a;
    ALTER TABLE a ALTER COLUMN a DROP NOT NULL;
    ALTER TABLE a SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported',
        'delta.columnMapping.mode' = 'name');
    ALTER TABLE a ALTER COLUMN c SET DEFAULT 4 + 1;
    ALTER TABLE a ALTER COLUMN c SET DEFAULT nope;
    ALTER TABLE a ALTER COLUMN c DROP DEFAULT;
    ALTER TABLE a RENAME COLUMN c TO `c d`;
    ALTER TABLE a DROP COLUMN `c d`;
    ALTER TABLE a DROP COLUMNS (nope);
    ALTER TABLE a REPLACE COLUMNS (a INT, d INT);
    ALTER TABLE a ADD CONSTRAINT pos CHECK (a > 0);
    ALTER TABLE a DROP CONSTRAINT pos;
    ALTER TABLE a CLUSTER BY (a);
    ALTER TABLE a CLUSTER BY NONE;
    ALTER TABLE a DROP FEATURE 'checkConstraints';
    COMMENT ON TABLE a IS 'now';
    ALTER TABLE a RENAME TO a2;
    SELECT count(*) FROM a2;
    SELECT count(*) FROM a;
    ALTER TABLE a2 RENAME TO db2.a3;
    ALTER TABLE a2 SET LOCATION 'ROOT/empty';
    CREATE TABLE e (a INT) USING delta LOCATION 'ROOT/e';
    INSERT INTO e VALUES (1);
    CREATE TABLE delta.`ROOT/e2` (a INT) USING delta;
    ALTER TABLE e SET LOCATION 'ROOT/e2';
    SELECT count(*) FROM e;
    ALTER TABLE e SET LOCATION 'ROOT/e';
    SELECT count(*) FROM e;
    DROP TABLE e;
    SELECT count(*) FROM e;
    DROP TABLE IF EXISTS e;
    DROP TABLE e;
    CREATE TABLE e USING delta LOCATION 'ROOT/e';
    SELECT count(*) FROM e;
    DROP TABLE a2 PURGE;
    CREATE TABLE pp (a INT) USING parquet;
    ALTER TABLE pp ADD COLUMNS (b INT);
    ALTER TABLE pp RENAME TO pp2;
    DROP TABLE pp2;
    DROP VIEW e;
    ALTER TABLE missing ADD COLUMNS (b INT);
    ALTER TABLE e ADD PARTITION (a = 1);
    ALTER TABLE e ADD COLUMNS (b INTEGERS)
"""

_MAINTENANCE = """
    CREATE TABLE m (id INT, v INT, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES
        ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true');
    INSERT INTO m VALUES (1, 1, 1), (2, 2, 1);
    INSERT INTO m VALUES (3, 3, 2);
    DELETE FROM m WHERE id = 1;
    OPTIMIZE nowhere;
    OPTIMIZE pq2;
    GENERATE symlink_format_manifest FOR TABLE m;
    VACUUM nowhere;
    RESTORE TABLE m TO VERSION AS OF 2;
    RESTORE m TO VERSION AS OF 99;
    SHOW TBLPROPERTIES m;
    SHOW TBLPROPERTIES m ('delta.enableChangeDataFeed');
    SHOW COLUMNS IN m;
    SHOW COLUMNS IN m IN matrix;
    SHOW PARTITIONS m;
    SHOW CREATE TABLE m;
    DESCRIBE m;
    DESC TABLE m;
    DESC m v;
    DESC m nope;
    DESCRIBE TABLE nowhere;
    DESCRIBE HISTORY nowhere;
    DESCRIBE DETAIL nowhere;
    SHOW TABLES LIKE 'm*';
    SELECT * FROM table_changes('m', 1, 3) ORDER BY id LIMIT 0;
    SELECT id, _change_type, _commit_version FROM table_changes('m', 1, 3);
    SELECT id, _change_type FROM table_changes('matrix.m', 3);
    SELECT id FROM table_changes('nowhere', 1);
    CREATE TABLE pq2 (a INT, p INT) USING parquet PARTITIONED BY (p);
    INSERT INTO pq2 VALUES (1, 1), (2, 2);
    DESCRIBE pq2;
    SHOW CREATE TABLE pq2;
    SHOW PARTITIONS pq2;
    SHOW TBLPROPERTIES pq2 ('nope');
    OPTIMIZE pq2;
    DESCRIBE HISTORY pq2;
    CONVERT TO DELTA pq2 PARTITIONED BY (p INT);
    SELECT * FROM pq2;
    INSERT INTO pq2 VALUES (3, 3);
    SELECT * FROM pq2;
    CONVERT TO DELTA pq2 PARTITIONED BY (p INT);
    CONVERT TO DELTA nowhere;
    CREATE TABLE pq3 (a INT, p INT) USING parquet PARTITIONED BY (p) LOCATION 'ROOT/pq3';
    INSERT INTO pq3 VALUES (1, 1), (2, 2);
    CONVERT TO DELTA pq3;
    SELECT * FROM pq3;
    CONVERT TO DELTA m DRY RUN
"""

_QUERIES = """
    CREATE TABLE q (id INT, v INT) USING delta;
    INSERT INTO q VALUES (1, 1), (2, 2);
    INSERT INTO q VALUES (3, 3);
    CREATE TABLE db2.q (id INT, w INT) USING delta;
    INSERT INTO db2.q VALUES (1, 10);
    SELECT * FROM q VERSION AS OF 1;
    SELECT * FROM q VERSION AS OF 0;
    SELECT * FROM q VERSION AS OF 9;
    SELECT count(*) FROM q TIMESTAMP AS OF current_timestamp();
    SELECT x.id FROM q FOR VERSION AS OF 1 AS x JOIN q ON q.id = x.id;
    SELECT db2.q.w, q.v FROM db2.q JOIN q ON db2.q.id = q.id;
    SELECT q.w FROM db2.q;
    SELECT matrix.q.v FROM q;
    SELECT spark_catalog.matrix.q.v FROM matrix.q;
    SELECT * FROM db2.q a JOIN q b ON a.id = b.id;
    SELECT id FROM q, db2.q;
    SELECT q.id, db2.q.id FROM q, db2.q WHERE q.id = db2.q.id;
    SELECT a.* FROM q a LEFT ANTI JOIN db2.q USING (id);
    WITH q AS (SELECT 5 AS id) SELECT * FROM q;
    WITH w AS (SELECT * FROM q) SELECT count(*), (SELECT max(w) FROM db2.q) FROM w;
    SELECT * FROM q WHERE EXISTS (SELECT 1 FROM db2.q WHERE q.id = db2.q.id);
    FROM q SELECT id;
    FROM q |> WHERE id > 1 |> SELECT v;
    TABLE q;
    SELECT /*+ BROADCAST(q) */ q.id FROM q;
    SELECT * FROM IDENTIFIER('q');
    SELECT * FROM IDENTIFIER('db2' || '.q');
    SELECT * FROM (q);
    SELECT * FROM q TABLESAMPLE (100 PERCENT) s;
    SELECT * FROM q LATERAL VIEW explode(array(1, 2)) t AS n;
    SELECT * FROM q PIVOT (sum(v) FOR id IN (1, 2));
    SELECT id FROM q UNION SELECT w FROM db2.q;
    SELECT * FROM q NATURAL JOIN db2.q;
    CREATE TEMP VIEW tv AS SELECT * FROM q WHERE id > 1;
    SELECT * FROM tv;
    INSERT INTO q VALUES (4, 4);
    SELECT * FROM tv;
    CREATE TEMP VIEW tv2 AS SELECT * FROM q VERSION AS OF 1;
    SELECT * FROM tv2;
    CREATE VIEW v1 AS SELECT id, v FROM q;
    CREATE VIEW v2 (one) AS SELECT id FROM v1 WHERE id > 2;
    SELECT * FROM v2;
    SELECT v1.id FROM matrix.v1 JOIN v2 ON v1.id = v2.one;
    DESCRIBE v1;
    ALTER VIEW v1 AS SELECT id, 0 AS v FROM q;
    SELECT * FROM v1;
    UPDATE tv SET v = 100;
    CREATE OR REPLACE TEMP VIEW whole AS SELECT * FROM q;
    MERGE INTO q USING v1 ON q.id = v1.id WHEN MATCHED THEN UPDATE SET v = v1.v;
    SELECT * FROM q;
    CACHE TABLE q;
    SELECT * FROM q;
    INSERT INTO q VALUES (5, 5);
    SELECT count(*) FROM q;
    UNCACHE TABLE q;
    CACHE TABLE cc AS SELECT id FROM q;
    SELECT * FROM cc;
    UNCACHE TABLE cc;
    CACHE LAZY TABLE matrix.q;
    REFRESH TABLE q;
    CLEAR CACHE;
    EXPLAIN SELECT * FROM nowhere;
    BEGIN SELECT id FROM q WHERE id = 5; END;
    DROP VIEW v2;
    DROP VIEW v1;
    DROP VIEW tv;
    EXECUTE IMMEDIATE 'SELECT count(*) FROM q';
    EXECUTE IMMEDIATE 'INSERT INTO q VALUES (?, ?)' USING 6, 6;
    DECLARE OR REPLACE VARIABLE n INT DEFAULT 3;
    SELECT id FROM q WHERE id = n;
    INSERT INTO q SELECT n, n;
    SET VAR n = (SELECT max(id) FROM q);
    SELECT n;
    SELECT count(*) FROM Q;
    USE db2;
    SELECT * FROM q;
    ANALYZE TABLE q COMPUTE STATISTICS;
    USE matrix;
    UPDATE whole SET v = 50 WHERE id = 4
"""


def _texts(block: str) -> list[Step]:
    return steps(*(" ".join(text.split()) for text in _split(block)))


def _split(block: str) -> list[str]:
    """Split at semicolons at ends of lines: those in scripts and texts stay."""
    return [part for part in block.strip().split(";\n") if part.strip()]


def _explained(shop: Shop) -> list[str]:
    plan: str = shop.spark.sql("EXPLAIN SELECT id FROM q WHERE id > 1").first()[0]
    return [str("FileScan" in plan or "Scan parquet" in plan)]


def _upserted(shop: Shop) -> None:
    upsert(shop.spark.sql("SELECT 1 AS id, 500 AS v"), "q", keys=["id"])


def _converted(shop: Shop) -> DataFrame:
    shop.spark.sql("CREATE TABLE cv (a INT) USING parquet")
    shop.spark.sql("INSERT INTO cv VALUES (1)")
    return shop.tables.DeltaTable.convertToDelta(shop.spark, "cv").toDF()


def _listed(shop: Shop) -> list[str]:
    catalog = shop.spark.catalog
    table = catalog.getTable("q")
    return [
        str(catalog.tableExists("q")),
        str((table.name, table.tableType, table.isTemporary)),
        str([(c.name, c.dataType, c.isPartition) for c in catalog.listColumns("q")]),
        str(sorted((t.name, t.tableType) for t in catalog.listTables() if not t.isTemporary)),
        str(catalog.isCached("q")),
    ]


def _created(shop: Shop) -> list[str]:
    catalog = shop.spark.catalog
    schema = shop.spark.sql("SELECT 1 AS a").schema
    catalog.createTable("ct", schema=schema, source="delta", description="made")
    catalog.cacheTable("ct")
    catalog.uncacheTable("ct")
    catalog.refreshTable("ct")
    return [str(catalog.getTable("ct").description)]


_CALLS: list[Step] = [
    *steps("CREATE TABLE q (id INT, v INT) USING delta", "INSERT INTO q VALUES (1, 1), (2, 2)"),
    ("arguments", lambda s: s.spark.sql("SELECT * FROM q WHERE id = :n", args={"n": 1})),
    ("positions", lambda s: s.spark.sql("INSERT INTO q VALUES (?, ?)", args=[3, 3])),
    (
        "named identifier",
        lambda s: s.spark.sql("INSERT INTO IDENTIFIER(:t) VALUES (4, :v)", args={"t": "q", "v": 4}),
    ),
    ("fields", lambda s: s.spark.sql("INSERT INTO q SELECT * FROM {d}", d=s.spark.table("q"))),
    ("detail", lambda s: [str(s.table("q").detail().select("name", "format").first())]),
    ("history", lambda s: s.table("q").history().select("version", "operation")),
    ("explain", _explained),
    ("upsert", _upserted),
    ("convertToDelta", _converted),
    ("catalog", _listed),
    ("createTable", _created),
    ("table", lambda s: s.spark.table("q")),
    ("read.table", lambda s: s.spark.read.table("q")),
    ("read an older version", lambda s: s.spark.read.option("versionAsOf", 1).table("q")),
    ("table that is missing", lambda s: s.spark.table("nowhere")),
    (
        "insertInto",
        lambda s: s.spark.sql("SELECT 9 AS id, 9 AS v").write.insertInto("q", overwrite=True),
    ),
    (
        "insertInto another format",
        rows("SELECT 1 AS a", lambda r: r.write.mode("append").insertInto("pq")),
    ),
    ("drop by the catalog", lambda s: [str(s.spark.sql("DROP TABLE ct").count())]),
    ("what is left", lambda s: s.spark.table("q")),
]

BLOCKS: dict[str, list[Step]] = {
    "definitions": _texts(_DEFINITIONS),
    "rows": _texts(_ROWS),
    "changes": _texts(_CHANGES),
    "maintenance": _texts(_MAINTENANCE),
    "queries": _texts(_QUERIES),
    "calls": _CALLS,
}

SAME = ("definitions", "rows", "changes")
"""Blocks in which nothing but `OTHERWISE` differs; the program compares the others, too."""

_CONVERTS = "a client cannot make a managed entry one of another format"
OTHERWISE: dict[str, str] = {
    "INSERT INTO i REPLACE WHERE p = 1 AND q = 'y' VALUES (9, 1, 'y', 9)": (
        "the history has the condition as the user wrote it, not as Spark prints it"
    ),
    "EXPLAIN MERGE INTO i USING ip ON i.a = ip.a WHEN MATCHED THEN DELETE": (
        "the keys of the source are not known before it is staged"
    ),
    "CONVERT TO DELTA pq2 PARTITIONED BY (p INT)": _CONVERTS,
    "INSERT INTO pq2 VALUES (3, 3)": _CONVERTS,
    "convertToDelta": _CONVERTS,
}
"""Steps of which the two kinds of sessions make something else, with the reason."""

"""The values of new rows: each column's from the clause that fires, or from the finished row.

A column that a clause leaves out is computed once all others are known: a generated column
from its expression (M-101). So expressions see the new values, and names resolve as they do
over the table itself. They read values as a user gave them, unless another clause gives the
generated column itself: then it is judged in every row, by values as the table stores them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from puredelta.protocol.table.table_config import TableConfig
from puredelta.spark.session.helper_columns import CLAUSE
from puredelta.spark.session.types import quoted
from puredelta.spark.values.filled_columns import generated_value
from puredelta.spark.write.writer import stored_rows


def rows_with_values(
    frame: DataFrame,
    actions: Mapping[int, Mapping[str, Column]],
    config: TableConfig,
    *,
    helpers: Sequence[str] = (),
    unjudged: Collection[str] = (),
) -> DataFrame:
    """Give every row the values of its clause: the table's columns, then `CLAUSE`, `helpers`.

    ``frame`` has the number of the clause in `CLAUSE`; ``actions`` has by number the values
    of every column but the generated ones that are to be computed; ``unjudged`` are those that
    are computed in every row of the statement. Runs nothing.
    """
    computed = {
        name: [number for number, values in actions.items() if name not in values]
        for name in config.generated_columns
    }
    missing = {name: numbers for name, numbers in computed.items() if numbers}
    fires = {number: F.col(CLAUSE) == number for number in list(actions)[:-1]}
    names = [*config.schema.names, CLAUSE, *helpers]
    values = [_value(name, actions, fires) for name in config.schema.names]
    rows = frame.select(*values, CLAUSE, *helpers).toDF(*names)
    if not missing.keys() <= {*unjudged}:
        rows = stored_rows(rows, config)
    generated = {
        name: F.when(F.col(CLAUSE).isin(numbers), generated_value(config, name)).otherwise(
            F.col(quoted(name))
        )
        for name, numbers in missing.items()
    }
    return rows.withColumns(generated) if generated else rows


def _value(
    name: str, actions: Mapping[int, Mapping[str, Column]], fires: Mapping[int, Column]
) -> Column:
    """Return the value of the clause that fires; NULL where it leaves the column out.

    ``fires`` tells it for every clause but the last. A value that is the same for all of
    them, as that of ``*`` is, needs no choice.
    """
    numbers = [number for number, values in actions.items() if name in values]
    if not numbers:
        return F.lit(None)
    value = actions[numbers[-1]][name]
    for number in numbers[:-1]:
        if actions[number][name] is not value:
            value = F.when(fires[number], actions[number][name]).otherwise(value)
    return value

{{ config(materialized="incremental", incremental_strategy="append", on_schema_change="append_new_columns") }}
select count(*) as num_orders, {{ var("run") }} as run
{% if is_incremental() %}, "new" as note {% endif %}
from {{ ref("orders") }}

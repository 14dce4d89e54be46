{{ config(materialized="incremental", incremental_strategy="insert_overwrite", partition_by="day") }}
select count(*) as num_orders, day from {{ ref("orders") }} group by day

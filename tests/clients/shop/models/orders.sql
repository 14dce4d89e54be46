{{ config(materialized="table", partition_by="day") }}
select id, customer, cast(amount as decimal(9, 2)) as amount, day from {{ ref("Raw_Orders") }}

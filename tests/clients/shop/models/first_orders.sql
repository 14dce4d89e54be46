{{ config(materialized="view") }}
select id, amount from {{ ref("Raw_Orders") }} version as of 1

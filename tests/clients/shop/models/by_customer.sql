{{ config(materialized="incremental", incremental_strategy="merge", unique_key="customer") }}
select customer, sum(amount) as total, {{ var("run") }} as run from {{ ref("orders") }}
{% if is_incremental() %} where customer = "{{ var('changed') }}" {% endif %}
group by customer

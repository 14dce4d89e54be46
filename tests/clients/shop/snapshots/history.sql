{% snapshot history %}
{{ config(target_schema="shop", unique_key="id", strategy="check", check_cols=["amount"], file_format="delta") }}
select id, amount from {{ ref("Raw_Orders") }}
{% endsnapshot %}

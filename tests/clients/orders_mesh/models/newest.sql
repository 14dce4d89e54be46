MODEL (name mesh.newest, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id), start '2024-01-01', cron '@daily');
SELECT id, amount FROM mesh.raw

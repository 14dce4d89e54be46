MODEL (name mesh.days, kind INCREMENTAL_BY_TIME_RANGE (time_column day), start '2024-01-01', cron '@daily');
SELECT count(*)::BIGINT AS num_orders, day FROM mesh.raw WHERE day BETWEEN @start_ds AND @end_ds GROUP BY day

MODEL (name mesh.whole, kind FULL);
SELECT id, amount * 2 AS doubled, day FROM mesh.raw

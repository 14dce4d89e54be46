MODEL (name mesh.shown, kind VIEW);
SELECT sum(doubled) AS total FROM mesh.whole

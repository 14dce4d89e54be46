MODEL (name mesh.raw, kind SEED (path '../seeds/raw.csv'), columns (id INT, amount DOUBLE, day DATE));

import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { optimize } from 'svgo';

const dir = process.argv[2];
for (const name of await readdir(dir)) {
  if (!name.endsWith('.svg')) continue;
  const file = join(dir, name);
  const { data } = optimize(await readFile(file, 'utf8'), { path: file, floatPrecision: 2 });
  await writeFile(file, data);
}

// pi: the function its own start-up uses to list a folder of skills. Called with the folder of its package,
// then as clock.py describes.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [packageFolder, small, measured] = process.argv.slice(2);
const { loadSkillsFromDir } = await import(pathToFileURL(join(packageFolder, "dist", "index.js")));
const listing = (dir) => loadSkillsFromDir({ dir, source: "user" }).skills;

listing(small);
const cpu = process.cpuUsage();
const wall = performance.now();
const skills = listing(measured);
const wallMs = performance.now() - wall;
const { user, system } = process.cpuUsage(cpu);
console.log(JSON.stringify({ listed: skills.length, wall_ms: wallMs, cpu_ms: (user + system) / 1e3 }));
process.exit(0);

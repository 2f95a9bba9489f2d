// Work that is done once before the next picture, however often it was asked for.

const asked = new Set();
let waiting = 0;

export function beforeNextFrame(job) {
  asked.add(job);
  waiting ||= requestAnimationFrame(run);
}

function run(now) {
  waiting = 0;
  const jobs = [...asked];
  asked.clear();
  for (const job of jobs) job(now);
}

"""Play many seeds, look for planted mutants, and write a report."""

import argparse
import time

from fleet.simulation.world import simulated

def main():
    parser = argparse.ArgumentParser(prog="fleet.simulation", description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=200)
    given = parser.parse_args()
    from collections import Counter
    total=Counter(); secs=0; began=time.process_time(); bad=0; slow=[]
    for seed in range(given.first, given.first+given.seeds):
        t=time.process_time()
        r = simulated(seed)
        slow.append((time.process_time()-t, seed))
        total += r.counts; secs += r.seconds
        if r.failure:
            bad+=1
            print(r.failure.split("\n")[0][:300])
        if given.seeds==1: print(r)
    cpu=time.process_time()-began
    print(sorted(total.items())); print(f"{bad} failed; {secs:.0f} virtual s in {cpu:.1f} s CPU: {secs/cpu:.0f}, {given.seeds/cpu:.1f} seeds/s", sorted(slow)[-5:])

main()

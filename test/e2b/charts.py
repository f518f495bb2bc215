# Draws one figure of each kind that charts tell of, in the order in which the tests read them.
import datetime

import matplotlib.pyplot as plt
import numpy

days = [datetime.date(2023, 9, 1), datetime.date(2023, 9, 2)]

plt.figure()
plt.plot(days, [0, 1.5], label="sin(x)")
plt.plot(days, [2, 3])
plt.axhline(0.5)
plt.title("Waves")
plt.xlabel("Time (s)")
plt.ylabel("Amplitude [V]")

plt.figure()
plt.scatter([1, 10], [2, numpy.nan], c=[0, 1])
plt.colorbar()
plt.xscale("log")

plt.figure()
plt.bar(["A", "B"], [100, 200], label="sold")
plt.xlabel("Authors")

plt.figure()
plt.barh(["A", "B"], [3, 4])

plt.figure()
plt.bar([-0.2, 0.8], [1, 2], 0.4, label="one")
plt.bar([0.2, 1.2], [3, 4], 0.4, label="two")
plt.xticks([0, 1], ["x", "y"])

plt.figure()
plt.pie([90, 10], labels=["No", "No, in blue"], autopct="%1.1f%%")
plt.title("Up early?")

plt.figure()
plt.boxplot([[1, 2, 2, 3, 3, 4, 4, 5, 50], [1, 2, 3]], patch_artist=True)
plt.gca().set_xticklabels(["a", "b"])

figure, axes = plt.subplots(1, 2)
figure.suptitle("Several")
axes[0].plot([1, 2], [0, 1])
axes[0].set_title("Sine")
axes[1].scatter([1], [2])

plt.figure()
plt.bar([1, 2], [3, 4])
plt.plot([1, 2], [3, 4])

plt.figure()
plt.imshow([[1, 2], [3, 4]])
plt.title("A picture")

plt.figure()

plt.figure()
plt.plot(range(20000))
None

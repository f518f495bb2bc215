#include <iostream>
#include <sandbox.hpp>

int main() {
  auto runtime = sandbox::runtime::open();
  auto box = runtime.create(sandbox::box_options("default"));
  std::cout << box.run({"python3", "-c", "print('from a box: 2**100 =', 2**100)"}).out;
}  // the runtime removes the box

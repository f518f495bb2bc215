// Runs code piece by piece: the context of the box keeps what it defines.
#include <iostream>
#include <sandbox.hpp>

int main() {
  auto runtime = sandbox::runtime::open();
  auto box = runtime.create(sandbox::box_options("default"));
  for (const char *cell : {"squares = [n * n for n in range(5)]", "print('the sum'); sum(squares)", "squares[5]"}) {
    auto run = box.start_code(sandbox::code(cell));
    for (const std::string &event : run.events()) std::cout << event << "\n";  // JSON, from "start" to "end"
  }
}

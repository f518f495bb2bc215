// Copies a file into a box and what became of it out again.
#include <fstream>
#include <iostream>
#include <sandbox.hpp>

int main(int, char **argv) {
  const std::string here = argv[2];  // a directory
  std::ofstream(here + "/numbers") << "3\n1\n2\n";

  auto runtime = sandbox::runtime::local();
  sandbox::box_options options;
  options.rootfs_path = argv[1];
  options.network = sandbox::network::none;
  auto box = runtime.create(options);
  long long bytes = 0;
  box.copy_in(here + "/numbers", "/work/", [&](const sandbox::progress &p) { bytes = p.done; });
  box.run({"sh", "-c", "sort /work/numbers > /work/sorted"});
  box.copy_out("/work/sorted", here + "/");
  std::cout << bytes << " bytes went in\n" << std::ifstream(here + "/sorted").rdbuf();
}

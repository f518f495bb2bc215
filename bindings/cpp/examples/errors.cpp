// Every case of failure has a class of its own.
#include <chrono>
#include <iostream>
#include <sandbox.hpp>

int main(int, char **argv) {
  auto runtime = sandbox::runtime::local();
  try {
    runtime.get("nobody");
  } catch (const sandbox::not_found_error &e) {
    std::cout << "not found: " << e.what() << "\n";
  }

  sandbox::box_options options;
  options.rootfs_path = argv[1];
  options.network = sandbox::network::none;
  auto box = runtime.create(options);
  std::cout << "a command that fails: exit code " << box.run({"false"}).exit_code << "\n";
  try {
    box.run({"no-such-command"});
  } catch (const sandbox::execution_error &e) {
    std::cout << e.what() << ", exit code " << e.exit_code().value_or(0) << "\n";
  }
  sandbox::command slow{"sleep", "1000"};
  slow.timeout = std::chrono::milliseconds(50);
  try {
    box.run(slow);
  } catch (const sandbox::error &e) {  // of every class
    std::cout << "code " << e.code() << ": " << e.what() << "\n";
  }
}

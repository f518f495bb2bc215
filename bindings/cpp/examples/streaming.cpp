// Reads a command's output while it runs, writes to it and ends it.
#include <csignal>
#include <iostream>
#include <sandbox.hpp>

int main(int, char **argv) {
  auto runtime = sandbox::runtime::local();
  sandbox::box_options options;
  options.rootfs_path = argv[1];  // a directory, in place of an image
  options.network = sandbox::network::none;
  auto box = runtime.create(options);

  sandbox::command shell{"sh"};
  shell.open_stdin = true;
  shell.env = {{"GREETING", "hello"}};
  auto execution = box.exec(shell);
  execution.write("trap 'echo interrupted; exit 3' INT; echo $GREETING; echo now >&2; while :; do sleep 0.01; done\n");
  for (sandbox::piece piece : execution.pieces()) {
    (piece.stream == sandbox::stream::err ? std::cerr : std::cout) << piece.bytes;
    if (piece.stream == sandbox::stream::err) execution.signal(SIGINT);
  }
  std::cout << "exit code " << execution.wait() << "\n";
}

// A failure as a value, where the compiler has std::expected (C++23).
#include <iostream>
#include <sandbox.hpp>

int main() {
  auto runtime = sandbox::runtime::local();
  auto box = sandbox::attempt([&] { return runtime.get("nobody"); });
  if (!box && box.error().code() == SANDBOX_NOT_FOUND) std::cout << box.error().what() << "\n";
}

#include <jitsmith/cache/trusted_path.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace jitsmith {
namespace {

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    begin = end + 1;
  }
  return parts;
}

TrustedParent fail(const std::string& name, int error, IfMissing if_missing) {
  return {{}, {}, cannot_open(name, error, if_missing), error};
}

// One step down.
TrustedParent enter(FileSystem& fs, int parent, const std::string& name, IfMissing if_missing) {
  // Without O_DIRECTORY O_PATH opens a link itself.
  constexpr int k_flags = O_PATH | O_NOFOLLOW;
  Descriptor next(fs, fs.open_at(parent, name.c_str(), k_flags));
  if (next.error() == ENOENT && if_missing == IfMissing::create) {
    const int made = fs.make_directory_at(parent, name.c_str(), 0700);
    if (made < 0 && made != -EEXIST) return fail(name, -made, if_missing);
    next = Descriptor(fs, fs.open_at(parent, name.c_str(), k_flags));
  }
  if (!next.is_open()) return fail(name, next.error(), if_missing);
  struct ::stat stat {};
  if (const int result = fs.stat(next.get(), stat); result < 0) return fail(name, -result, if_missing);
  if (!S_ISLNK(stat.st_mode)) return {std::move(next), {}, {}, 0};
  if (stat.st_uid != ::geteuid() && stat.st_uid != 0)
    return {{}, {}, fmt::format("is reached through {}, a symbolic link of another user", name), 0};
  next = Descriptor(fs, fs.open_at(parent, name.c_str(), O_PATH | O_DIRECTORY));
  if (!next.is_open()) return fail(name, next.error(), if_missing);
  return {std::move(next), {}, {}, 0};
}

}  // namespace

std::string cannot_open(std::string_view name, int error, IfMissing if_missing) {
  return fmt::format("cannot be opened{} ({}: {})", if_missing == IfMissing::create ? " or created" : "",
                     name, std::strerror(error));
}

TrustedParent open_trusted_parent(FileSystem& fs, const std::string& base, std::string_view below,
                                  IfMissing if_missing) {
  TrustedParent here{Descriptor(fs, fs.open_at(AT_FDCWD, base.c_str(), O_PATH | O_DIRECTORY)), {}, {}, 0};
  if (!here.directory.is_open()) return fail(base, here.directory.error(), if_missing);
  std::vector<std::string> parts = split(below);
  if (parts.empty()) return {{}, {}, "is the root of the file system", 0};
  const std::string name = std::move(parts.back());
  parts.pop_back();
  for (const std::string& part : parts) {
    here = enter(fs, here.directory.get(), part, if_missing);
    if (!here.problem.empty()) return here;
  }
  here.name = name;
  return here;
}

}  // namespace jitsmith

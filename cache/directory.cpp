#include <jitsmith/cache/directory.hpp>

#include <jitsmith/cache/private_file.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

namespace jitsmith {
namespace {

constexpr const char* k_format_folder = "v1";
constexpr const char* k_tag_name = "CACHEDIR.TAG";
constexpr std::string_view k_tag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Compiled kernels of jitsmith. They can be removed at any time and will be made again.\n"
    "# For information about cache directory tags, see https://bford.info/cachedir/\n";

struct Step {
  Descriptor directory;
  std::string problem;  // a predicate for "the cache directory X ..."; empty when all is well
};

std::string cannot_open(std::string_view what, int error) {
  return fmt::format("cannot be opened or created ({}: {})", what, std::strerror(error));
}

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

// One step down a parent, which may belong to anybody, but must not be a symbolic link that another user
// planted. Links of our own or of root are followed: a home or a cache folder on another disk is an ordinary
// set-up.
Step enter(FileSystem& fs, int parent, const std::string& name) {
  // O_PATH: parents need be searchable only, not readable; without O_DIRECTORY it opens a link itself.
  constexpr int k_flags = O_PATH | O_NOFOLLOW;
  Descriptor next(fs, fs.open_at(parent, name.c_str(), k_flags));
  if (next.error() == ENOENT) {
    const int made = fs.make_directory_at(parent, name.c_str(), 0700);
    if (made < 0 && made != -EEXIST) return {{}, cannot_open(name, -made)};
    next = Descriptor(fs, fs.open_at(parent, name.c_str(), k_flags));
  }
  if (!next.is_open()) return {{}, cannot_open(name, next.error())};
  struct ::stat stat {};
  if (const int result = fs.stat(next.get(), stat); result < 0) return {{}, cannot_open(name, -result)};
  if (!S_ISLNK(stat.st_mode)) return {std::move(next), {}};
  if (stat.st_uid != ::geteuid() && stat.st_uid != 0) {
    return {{}, fmt::format("is reached through {}, a symbolic link of another user", name)};
  }
  next = Descriptor(fs, fs.open_at(parent, name.c_str(), O_PATH | O_DIRECTORY));
  if (!next.is_open()) return {{}, cannot_open(name, next.error())};
  return {std::move(next), {}};
}

Step enter_private(FileSystem& fs, int parent, const std::string& name) {
  PrivateDirectory opened = open_private_directory(fs, parent, name.c_str(), IfMissing::create);
  if (opened.error == ENOTDIR || opened.error == ELOOP) {
    return {{}, fmt::format("cannot be used because {} is a symbolic link or not a directory", name)};
  }
  if (opened.error != 0) return {{}, cannot_open(name, opened.error)};
  if (opened.vetting != Vetting::trusted) {
    return {{},
            fmt::format("cannot be trusted because {} {} (only you may own and write it)", name,
                        describe(opened.vetting))};
  }
  return {std::move(opened.directory), {}};
}

Step enter_root(FileSystem& fs, const DirectoryChoice& choice) {
  Step here{Descriptor(fs, fs.open_at(AT_FDCWD, choice.base.c_str(), O_PATH | O_DIRECTORY)), {}};
  if (!here.directory.is_open()) return {{}, cannot_open(choice.base, here.directory.error())};
  const auto parts = split(choice.below);
  if (parts.empty()) return {{}, "is the root of the file system"};
  for (std::size_t i = 0; i + 1 < parts.size() && here.problem.empty(); ++i) {
    here = enter(fs, here.directory.get(), parts[i]);
  }
  return here.problem.empty() ? enter_private(fs, here.directory.get(), parts.back()) : std::move(here);
}

void write_tag(FileSystem& fs, int root) {
  struct ::stat stat {};
  if (fs.stat_at(root, k_tag_name, stat) != -ENOENT) return;
  // Only a courtesy to backup programs: that it cannot be written changes nothing.
  publish_private_file(fs, root, k_tag_name, std::as_bytes(std::span(k_tag)));
}

}  // namespace

std::string_view to_string(DirectoryStatus status) {
  switch (status) {
    case DirectoryStatus::usable:
      return "usable";
    case DirectoryStatus::read_only:
      return "read-only";
    case DirectoryStatus::off:
      return "off";
  }
  return "unknown";
}

Directory open_directory(FileSystem& fs, const DirectoryRequest& request) {
  const DirectoryChoice choice = choose_directory(request);
  if (!choice.reason.empty()) return {{DirectoryStatus::off, {}, choice.reason}, {}};
  const std::string path = choice.path();
  const auto sentence = [&](std::string_view problem) {
    return fmt::format("the cache directory {} (from {}) {}; {}", path, choice.origin, problem,
                       choice.remedy);
  };

  const Step root = enter_root(fs, choice);
  if (!root.problem.empty()) return {{DirectoryStatus::off, path, sentence(root.problem)}, {}};
  Step entries = enter_private(fs, root.directory.get(), k_format_folder);
  if (!entries.problem.empty()) return {{DirectoryStatus::off, path, sentence(entries.problem)}, {}};

  if (const int result = fs.check_writable(entries.directory.get()); result < 0) {
    const std::string problem =
        fmt::format("cannot be written ({}), so it is only read", std::strerror(-result));
    return {{DirectoryStatus::read_only, path, sentence(problem)}, std::move(entries.directory)};
  }
  write_tag(fs, root.directory.get());
  return {{DirectoryStatus::usable, path, {}}, std::move(entries.directory)};
}

}  // namespace jitsmith

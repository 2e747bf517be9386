#include <jitsmith/cache/directory.hpp>

#include <jitsmith/cache/names.hpp>
#include <jitsmith/cache/private_file.hpp>
#include <jitsmith/cache/trusted_path.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <span>

namespace jitsmith {
namespace {

constexpr const char* k_tag_name = "CACHEDIR.TAG";
constexpr std::string_view k_tag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Compiled kernels of jitsmith. They can be removed at any time and will be made again.\n"
    "# For information about cache directory tags, see https://bford.info/cachedir/\n";

struct Step {
  Descriptor directory;
  std::string problem;  // a predicate for "the cache directory X ..."; empty when all is well
};

Step enter_private(FileSystem& fs, int parent, const std::string& name) {
  PrivateDirectory opened = open_private_directory(fs, parent, name.c_str(), IfMissing::create);
  if (opened.error == ENOTDIR || opened.error == ELOOP) {
    return {{}, fmt::format("cannot be used because {} is a symbolic link or not a directory", name)};
  }
  if (opened.error != 0) return {{}, cannot_open(name, opened.error, IfMissing::create)};
  if (opened.vetting != Vetting::trusted) {
    return {{},
            fmt::format("cannot be trusted because {} {} (only you may own and write it)", name,
                        describe(opened.vetting))};
  }
  return {std::move(opened.directory), {}};
}

Step enter_root(FileSystem& fs, const DirectoryChoice& choice) {
  TrustedParent parent = open_trusted_parent(fs, choice.base, choice.below, IfMissing::create);
  if (!parent.problem.empty()) return {{}, std::move(parent.problem)};
  return enter_private(fs, parent.directory.get(), parent.name);
}

void write_tag(FileSystem& fs, int root) {
  struct ::stat stat {};
  if (fs.stat_at(root, k_tag_name, stat) != -ENOENT) return;
  // Only a courtesy to backup programs: that it cannot be written changes nothing. Under its own name at
  // once, for nobody sweeps temporary files in this folder.
  const Descriptor tag(fs, fs.open_at(root, k_tag_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  if (tag.is_open() && fs.change_mode(tag.get(), 0600) == 0)
    fs.write_full(tag.get(), std::as_bytes(std::span(k_tag)));
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

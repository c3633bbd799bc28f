class A:
    x = 1

    def f(self):
        return 1


class B:
    y = 2

    def f(self):
        return 1


# end

int main(void) {
    int unused;
    return nothing;
}
